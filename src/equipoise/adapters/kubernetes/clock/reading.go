// The overlay adds this file to the package time.

package time

import _ "unsafe" // for linkname

// runtimeReading is the time of the last reading of the clock.
//
//go:linkname runtimeReading
func runtimeReading() int64
