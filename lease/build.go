package lease

import (
	"runtime/debug"
	"sync"
)

// modulePath is that of firn in a program's build information.
const modulePath = "github.com/firn-id/firn"

// buildVersion is the version of firn in this program, "" where that is not known. A worker's
// record has it, so that an operator sees which processes still run an older one.
var buildVersion = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if info.Main.Path == modulePath {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return ""
})
