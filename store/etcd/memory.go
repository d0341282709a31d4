package etcd

import (
	"fmt"
	"sync"

	"github.com/firn-id/firn/store"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// A memory is what a Store knows of the cluster it has talked to: who it was, and
// how far it had come. Every answer here is linearizable, so none may be behind
// one that had come when its request was sent.
type memory struct {
	mu       sync.Mutex // guards the rest
	cluster  uint64     // zero before the first answer
	revision int64
	forgot   *store.ForgotError
}

// check returns the error of a cluster that has forgotten.
func (m *memory) check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.forgot != nil {
		return m.forgot
	}
	return nil
}

// least is the revision below which the answer to a request sent now cannot be.
func (m *memory) least() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revision
}

// see takes note of an answer. name is the store's, for an error.
func (m *memory) see(name string, h *pb.ResponseHeader, least int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	what := ""
	switch {
	case m.forgot != nil:
	case m.cluster != 0 && m.cluster != h.GetClusterId():
		what = fmt.Sprintf("this is cluster %x, and it was %x", h.GetClusterId(), m.cluster)
	case h.GetRevision() < least:
		what = fmt.Sprintf("it is at revision %d, and was at %d", h.GetRevision(), least)
	default:
		m.cluster, m.revision = h.GetClusterId(), max(m.revision, h.GetRevision())
		return nil
	}
	if what != "" {
		m.forgot = &store.ForgotError{Store: name, What: what}
	}
	return m.forgot
}

// who is the cluster that answered.
func (m *memory) who() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cluster
}
