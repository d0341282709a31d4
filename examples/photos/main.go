// Command photos is a small photo-sharing service on 8 shards of 2 PostgreSQL servers. It
// takes the addresses of two databases, which it fills and leaves so:
//
//	createdb photos_a; createdb photos_b; createdb photos_c
//	go run ./examples/photos postgres://postgres@127.0.0.1/photos_a postgres://postgres@127.0.0.1/photos_b
//
// A third one is added as a server, and gets its part while the service is in use: that
// takes a superuser and wal_level = logical.
//
// The service is in photos.go, and its tables in migrations; the rest makes the cluster,
// and a story.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard"
)

func main() {
	urls := os.Args[1:]
	if len(urls) < 2 || len(urls) > 3 {
		fmt.Fprintln(os.Stderr, "usage: photos URL-OF-DATABASE-A URL-OF-DATABASE-B [URL-OF-DATABASE-C]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, urls, nil)
	stop()
	switch {
	case errors.Is(err, context.Canceled):
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "photos:", err)
		os.Exit(1)
	}
}

// run tells the story on the databases at two addresses, or three. Restart restarts the second
// one's server; nil: that chapter is left out.
func run(ctx context.Context, out io.Writer, addresses []string, restart func()) error {
	urls := map[string]string{"a": addresses[0], "b": addresses[1]}
	if err := makeShards(ctx, out, urls, 8); err != nil {
		return err
	}
	cluster, closePools, err := connect(ctx, urls)
	defer closePools()
	if err != nil {
		return err
	}
	photos := &Photos{cluster}
	users, err := photos.populate(ctx, out)
	if err != nil {
		return err
	}
	if err := photos.showFeed(ctx, out, users["dot"]); err != nil {
		return err
	}
	if restart != nil {
		if err := photos.restart(ctx, out, users, restart); err != nil {
			return err
		}
	}
	if len(addresses) < 3 {
		return nil
	}
	urls["c"] = addresses[2]
	return grow(ctx, out, urls, users)
}

// populate has users join, follow each other, share photos and like them.
func (p *Photos) populate(ctx context.Context, out io.Writer) (map[string]firn.ID, error) {
	users := make(map[string]firn.ID)
	fmt.Fprintln(out, "\nUsers join; their names find the shards, from then on their ids do:")
	for _, name := range []string{"ann", "bob", "cem", "dot"} {
		id, err := p.Join(ctx, name)
		if err != nil {
			return nil, err
		}
		users[name] = id
		fmt.Fprintf(out, "  %s is %d, on %v\n", name, id, p.shards.ForID(id))
	}
	for _, name := range []string{"ann", "bob", "cem"} {
		if err := p.Follow(ctx, users["dot"], users[name]); err != nil {
			return nil, err
		}
	}
	for i, caption := range []string{"snow", "firn", "ice", "crevasse", "glacier", "moraine", "lake"} {
		owner := []string{"ann", "bob", "cem"}[i%3]
		photo, err := p.Share(ctx, users[owner], caption)
		if err != nil {
			return nil, err
		}
		for _, liker := range []string{"dot", "cem", "bob"}[:i%4] {
			if err := p.Like(ctx, users[liker], photo); err != nil {
				return nil, err
			}
		}
		time.Sleep(2 * time.Millisecond) // ids of different shards are in order to the millisecond
	}
	return users, nil
}

// showFeed pages through the feed of a user.
func (p *Photos) showFeed(ctx context.Context, out io.Writer, user firn.ID) error {
	fmt.Fprintln(out, "\nDot's feed, merged of the shards of ann, bob and cem, in pages of 3:")
	for before := firn.ID(0); ; {
		page, err := p.Feed(ctx, user, before, 3)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, photo := range page {
			taken, err := photo.Taken()
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "  %d  %s  %s: %s (%d likes)\n", photo.ID, taken.Format("15:04:05.000"), photo.Owner, photo.Caption, photo.Likes)
			before = photo.ID
		}
		fmt.Fprintln(out, "  --")
	}
}

// restart restarts a server while users go on sharing.
func (p *Photos) restart(ctx context.Context, out io.Writer, users map[string]firn.ID, restart func()) error {
	fmt.Fprintln(out, "\nServer b is restarted, while all go on sharing:")
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan sharing)
	for _, id := range users {
		go func() { done <- p.share(ctx, id) }()
	}
	time.Sleep(100 * time.Millisecond)
	restart()
	time.Sleep(100 * time.Millisecond)
	stop()
	all := gather(done, len(users))
	fmt.Fprintf(out, "  %d photos were shared, the slowest within %s\n", all.photos, all.longest.Round(time.Millisecond))
	fmt.Fprintf(out, "  transactions that were broken off and begun again: %d\n", all.again)
	fmt.Fprintf(out, "  of %d nobody knows: the server went away while they were committed\n", all.unknown)
	for name, id := range users {
		if _, err := p.Share(context.WithoutCancel(ctx), id, "the last"); err != nil {
			return fmt.Errorf("%s cannot share: %w", name, err)
		}
	}
	return nil
}

// A sharing is what became of the photos of a user.
type sharing struct {
	photos, again, unknown int
	longest                time.Duration
}

// gather adds up what became of the photos of so many users.
func gather(done <-chan sharing, users int) (all sharing) {
	for range users {
		s := <-done
		all.photos += s.photos
		all.again += s.again
		all.unknown += s.unknown
		all.longest = max(all.longest, s.longest)
	}
	return all
}

// share shares photos until ctx ends. It begins no transaction that it would break
// off, so the transactions have a context of their own.
func (p *Photos) share(ctx context.Context, user firn.ID) (s sharing) {
	for ctx.Err() == nil {
		begun := time.Now()
		switch _, err := p.Share(context.WithoutCancel(ctx), user, "once more"); {
		case err == nil:
			s.photos++
		case errors.Is(err, shard.ErrAmbiguous):
			s.unknown++ // a program would look whether the photo is there
		default:
			s.again++ // it was certainly not committed
		}
		s.longest = max(s.longest, time.Since(begun))
		time.Sleep(10 * time.Millisecond) // a person takes longer, and moves need the processor too
	}
	return s
}
