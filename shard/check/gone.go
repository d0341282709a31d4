package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/shard/topology"
)

// An AnswersError says that a server answers which an operator called gone.
type AnswersError struct {
	Server string
	Err    error // with which it refuses to say what it serves; nil: it does not
}

func (e *AnswersError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("server %s is not gone, it answers: %s", e.Server, strings.TrimPrefix(e.Err.Error(), "shard: "))
	}
	return fmt.Sprintf("server %s is not gone, it answers", e.Server)
}

// answerPatience is how long a server is waited for that is said to be gone.
const answerPatience = 10 * time.Second

// ConfirmGone returns an [*AnswersError] where anything answers at the address of a server, even a refusal or
// another database: the server may still be there. Nil means that nothing answers.
func ConfirmGone(ctx context.Context, s topology.Server) error {
	patient, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	c, err := s.Connect(patient)
	var of *topology.ServerError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &of) && of.Answered():
		return &AnswersError{s.Name, of.Err}
	default:
		return nil
	}
	defer c.Close(context.WithoutCancel(ctx))
	_, err = topology.Look(patient, c)
	return &AnswersError{s.Name, err}
}
