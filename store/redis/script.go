package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"
)

// Every call is one script on one key: it runs where that key's master is, and
// nothing runs between its steps. The scripts are sent whole each time. A lease
// writes once in 10 seconds; remembering that a server knows a script would save
// nothing, and cost a second message whenever it has forgotten it.
//
// Replies are strings: a number of Lua's is exact up to 2^53 only, and a reply
// that is nil ends a list.

// clock is the first part of all: the server's clock in microseconds.
const clock = `local t = redis.call('TIME')
local now = t[1] .. string.format('%06d', t[2])
`

// master stops a script on a server that is not asked last: a replica may be
// behind, and would compare with what is no longer so. That it refuses to write is
// a setting, and it forgets what it was written.
const master = `local info = redis.call('INFO', 'replication')
if not string.find(info, 'role:master', 1, true) then
  return redis.error_reply('READONLY this server is a replica')
end
`

const getScript = clock + master + `local field = redis.call('HGET', KEYS[1], ARGV[1])
if not field then return {now} end
return {now, ARGV[1], field}
`

// listScript: cursor, pattern, count. It returns one page, after the time, the
// next cursor and what names the server's run. A key that has gone would end the
// list, like its last page.
const listScript = clock + master + `if ARGV[1] ~= '0' and redis.call('PTTL', KEYS[1]) == -2 then
  return redis.error_reply('FIRNGONE the key has gone')
end
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local out = {now, page[1], string.match(info, 'master_replid:(%w+)') or ''}
for i = 1, #page[2] do out[#out + 1] = page[2][i] end
return out
`

// putScript: key, version it is on, within, new version, value. It returns the
// time it was written at, or "conflict". HSET comes last: whatever stops the
// script has stopped the write.
const putScript = clock + master + `if redis.call('PTTL', KEYS[1]) >= 0 then
  return redis.error_reply('FIRNEXPIRES the key expires')
end
local field = redis.call('HGET', KEYS[1], ARGV[1])
local version, written = '', nil
if field then
  version, written = string.match(field, '^(%S+) (%d+)\n')
  if not version then return redis.error_reply('FIRNFIELD a field is not a record') end
end
if version ~= ARGV[2] then return 'conflict' end
if ARGV[3] ~= '' and (not written or tonumber(now) - tonumber(written) > tonumber(ARGV[3])) then
  return 'conflict'
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4] .. ' ' .. now .. '\n' .. ARGV[5])
return now
`

// promiseScript asks the server that has the key what it is.
const promiseScript = clock + `return {tostring(redis.call('PTTL', KEYS[1])), redis.call('INFO', 'server'),
  redis.call('INFO', 'replication'), redis.call('INFO', 'memory'), redis.call('INFO', 'persistence')}
`

// once is a command that the client sends once, whatever its MaxRetries. It may
// be redirected to another server of a cluster, by the one that did not run it.
type once struct{ *goredis.Cmd }

// NoRetry implements [goredis.Cmder].
func (once) NoRetry() bool { return true }

// eval runs a script on the store's key.
func (s *Store) eval(ctx context.Context, script string, args ...string) (any, error) {
	if ring, ok := s.client.(*goredis.Ring); ok && max(len(ring.Options().Addrs), ring.Len()) > 1 {
		return nil, errRing
	}
	all := []any{"EVAL", script, 1, s.key}
	for _, arg := range args {
		all = append(all, arg)
	}
	return send(ctx, s.client, all...)
}

// A processor is what a command is sent through.
type processor interface {
	Process(ctx context.Context, cmd goredis.Cmder) error
}

// send sends a command once, and waits for its answer until ctx ends. The client
// would wait on: by default it looks at ctx only before it sends.
func send(ctx context.Context, client processor, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd := once{goredis.NewCmd(ctx, args...)}
	if ctx.Done() == nil {
		err := client.Process(ctx, cmd)
		return cmd.Val(), err
	}
	answered := make(chan error, 1)
	go func() { answered <- client.Process(ctx, cmd) }()
	select {
	case err := <-answered:
		return cmd.Val(), err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
