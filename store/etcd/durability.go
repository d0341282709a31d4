package etcd

import (
	"context"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Durability implements [store.Store]. It is Durable; that the members sync their
// disks cannot be seen. That a member is known to be corrupt is an error.
func (s *Store) Durability(ctx context.Context) (store.Durability, error) {
	// What is read here is nothing; that it is read shows that there is a leader,
	// and that this is still the cluster it was.
	if _, err := s.get(ctx, &pb.RangeRequest{Key: []byte(s.prefix), CountOnly: true}); err != nil {
		return store.Durability{}, err
	}
	id := fmt.Sprintf("etcd cluster %x", s.memory.who())
	p := store.Durability{Durable: true, Instance: id, Identity: id}
	conn := s.client.ActiveConnection()
	version := "version not seen"
	if status, err := clientv3.RetryMaintenanceClient(s.client, conn).Status(ctx, &pb.StatusRequest{}); err == nil {
		version = status.Version
		// Members go on reading when one of them is known to be corrupt.
		for _, alarm := range status.Errors {
			if strings.Contains(alarm, pb.AlarmType_CORRUPT.String()) {
				return store.Durability{}, s.explain(ctx, rpctypes.ErrGRPCCorrupt)
			}
		}
	} else if ctx.Err() != nil {
		return store.Durability{}, s.explain(ctx, err)
	}
	members := "members not seen"
	if list, err := clientv3.RetryClusterClient(s.client).MemberList(ctx, &pb.MemberListRequest{}); err == nil {
		members = describe(list.Members)
	} else if ctx.Err() != nil {
		return store.Durability{}, s.explain(ctx, err)
	}
	p.Why = fmt.Sprintf("etcd %s; %s; a majority has synced a write before it is acknowledged, unless --unsafe-no-fsync is set, which cannot be seen", version, members)
	return p, nil
}

// describe counts members.
func describe(members []*pb.Member) string {
	voters, learners := 0, 0
	for _, m := range members {
		if m.IsLearner {
			learners++
		} else {
			voters++
		}
	}
	text := fmt.Sprintf("%d members, of which %d may be away", voters, (voters-1)/2)
	if voters == 1 {
		text = "a single member: all rests on its disk"
	}
	switch learners {
	case 0:
	case 1:
		text += ", and 1 learner"
	default:
		text += fmt.Sprintf(", and %d learners", learners)
	}
	return text
}
