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
	golang.org/x/sys v0.49.0
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_golang v1.25.0 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/firn-id/firn => ../
