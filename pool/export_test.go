package pool

// CheckStore is for tests.
var CheckStore = checkStore
