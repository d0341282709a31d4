//go:build linux && !race

package torture

const raceDetector = false
