module github.com/firn-id/firn/bench

go 1.26.0

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/firn-id/firn v0.0.0
	github.com/google/uuid v1.6.0
	github.com/oklog/ulid/v2 v2.1.2
	github.com/rs/xid v1.6.0
	github.com/sony/sonyflake v1.2.0
	github.com/speps/go-hashids/v2 v2.0.1
	github.com/sqids/sqids-go v0.4.1
	go.etcd.io/etcd/pkg/v3 v3.7.3
)

replace github.com/firn-id/firn => ../
