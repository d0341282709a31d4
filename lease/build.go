package lease

import (
	"runtime/debug"
	"sync"

	"github.com/firn-id/firn/internal/version"
)

// buildVersion is the version of firn in this program, with the commit if that is known. A worker's record has it, so
// that an operator sees which processes still run an older one.
var buildVersion = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return version.Of(info)
})
