//go:build linux && !race

package siege

const raceDetector = false
