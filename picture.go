package firn

// Picture draws the bits of l.
func (l Layout) Picture() string { return l.String() }
