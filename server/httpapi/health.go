package httpapi

import (
	"net/http"

	"github.com/firn-id/firn/server"
)

// healthy says that the process answers. Restarting it helps nobody whose store is
// away: that is for ready to say.
func (*api) healthy(w http.ResponseWriter, _ *http.Request) *problem {
	send(w, textType, []byte("ok\n"))
	return nil
}

// ready says whether work may be sent here. It says no before ids end, and which series is not
// ready where the others are. What kind of trouble it is, everybody is told; which series and why,
// those who have the right admin, where there are tokens.
func (a *api) ready(w http.ResponseWriter, r *http.Request) *problem {
	err := a.server.Ready()
	if err == nil {
		text := "ready\n"
		if away := a.server.Away(); away != "" {
			text = "ready; " + away + "\n"
		}
		if err = a.server.Lacking(); err != nil && a.admin(r) == nil {
			text = "ready, but for " + server.Details(err) + "\n"
		} else if err != nil {
			text = "ready, but " + server.Troubles(err) + "\n"
		}
		send(w, textType, []byte(text))
		return nil
	}
	p := notReady.problem("%s", server.Details(err)).hint("%s", server.Cures(err))
	if a.admin(r) != nil {
		p = notReady.problem("%s", server.Troubles(err)).hint("ask again with a token that has the right admin: it is told which series, and why")
	}
	p.at = server.RetryAt(err)
	return p
}
