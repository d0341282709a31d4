package httpapi

import "net/http"

// healthy says that the process answers. Restarting it helps nobody whose store is
// away: that is for ready to say.
func (*api) healthy(w http.ResponseWriter, _ *http.Request) *problem {
	send(w, textType, []byte("ok\n"))
	return nil
}

// ready says whether work may be sent here. It says no before ids end. Why, it tells
// those who may know: where there are tokens, those who have the right admin.
func (a *api) ready(w http.ResponseWriter, r *http.Request) *problem {
	err := a.server.Ready()
	if err == nil {
		send(w, textType, []byte("ready\n"))
		return nil
	}
	if a.admin(r) != nil {
		return notReady.problem("a series cannot issue, or will stop soon").hint("ask again with a token that has the right admin")
	}
	return notReady.problem("%v", err)
}
