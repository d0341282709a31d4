package sqlite

import "os"

// links knows nothing here: os.FileInfo does not say how many names a file has.
func links(os.FileInfo) int { return 1 }
