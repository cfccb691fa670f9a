// The virtual clock of a Go program. The overlay adds this file to the package runtime.
//
// The program maps the page that EQUIPOISE_CLOCK names, and opens two pipes beside it. Package time
// reads the page; the runtime's own work (locks, preemption, garbage collection) stays on real time.
// The program reports in the page whether it is active: the number of processors (Ps) that are not
// idle, of threads (Ms) that neither sleep nor wait for the network, and of signals that were taken
// and wait for their goroutine. At 0 it can continue only when an input or a signal arrives or when
// the simulator advances the clock.
// page.py writes the same layout.

package runtime

import (
	"internal/runtime/atomic"
	"internal/runtime/syscall/linux"
	"unsafe"
)

const (
	virtualClockMagic = 0x316c637069757145
	virtualClockSize  = 4096
	oneChange         = 1 << 32
	sysmonSleepNS     = 10 * 1000 * 1000
	pathLength        = 16
	pathCount         = 1024
)

type virtualClockPage struct {
	magic   int64
	now     int64 // monotonic time in ns, above 0
	wall    int64 // to be added to a monotonic time; gives ns since 1970
	reads   int64 // readings within this instant; each adds 1 ns, so that readings keep their order
	request int64 // advances that the simulator made
	seen    int64 // the last of them whose timers the program ran or is running
	state   int64 // low half: active threads and processors; high half: how often one was added
	next    int64 // the next timer, 0 for none; valid while nothing is active
	notify  int64 // 1: the simulator wants a byte in the pipe when nothing is active
	pid     int64
	poller  int64 // the thread that waits for the network
	seed    int64 // of the random numbers
}

// virtualDraws counts the draws of this instant by path. A path that finds no place shares one.
var virtualDraws struct {
	lock  mutex
	paths [pathCount]struct {
		path  uint64
		now   int64
		count uint64
	}
}

var (
	virtualClock     *virtualClockPage
	virtualClockWake uintptr // the simulator writes a byte after each advance
	virtualClockIdle uintptr // the program writes a byte on request
)

// time_now replaces the assembly function, which is realTimeNow here.
//
//go:linkname time_now time.now
func time_now() (sec int64, nsec int32, mono int64) {
	p := virtualClock
	if p == nil {
		return realTimeNow()
	}
	mono = atomic.Loadint64(&p.now) + atomic.Xaddint64(&p.reads, 1) - 1
	wall := mono + p.wall
	return wall / 1000000000, int32(wall % 1000000000), mono
}

// time_runtimeReading is for time.Since: never before a reading that the program already has.
//
//go:linkname time_runtimeReading time.runtimeReading
func time_runtimeReading() int64 {
	if p := virtualClock; p != nil {
		return atomic.Loadint64(&p.now) + atomic.Loadint64(&p.reads)
	}
	return nanotime()
}

// virtualNano is the time of timers and deadlines.
//
//go:nosplit
func virtualNano() int64 {
	if p := virtualClock; p != nil {
		return atomic.Loadint64(&p.now)
	}
	return nanotime()
}

// realOrUnknown hides a time that may come from timers, for callers that need real time.
func realOrUnknown(now int64) int64 {
	if virtualClock != nil {
		return 0
	}
	return now
}

// pollDelay is how long the poller of the network may wait for a timer.
//
//go:nosplit
//go:nowritebarrierrec
func pollDelay(until, now int64) int64 {
	if virtualClock == nil {
		return until - now
	}
	if until > virtualNano() {
		return maxWhen // the simulator wakes it
	}
	return 0
}

// sysmonUntil keeps the monitor thread awake enough: it cannot compare timers with real time.
func sysmonUntil(next, now int64) int64 {
	if virtualClock == nil {
		return next
	}
	return now + sysmonSleepNS
}

// countActive adds to the number of active threads and processors.
//
//go:nosplit
//go:nowritebarrierrec
func countActive(delta int64) {
	p := virtualClock
	if p == nil {
		return
	}
	if delta > 0 {
		atomic.Xaddint64(&p.state, oneChange+delta)
		return
	}
	if int32(atomic.Xaddint64(&p.state, delta)) == 0 && atomic.Loadint64(&p.notify) != 0 {
		if atomic.Xchgint64(&p.notify, 0) != 0 {
			one := byte(1)
			write1(virtualClockIdle, noescape(unsafe.Pointer(&one)), 1)
		}
	}
}

// pollerSleeps says that this thread is about to wait for the network and the next timer.
//
//go:nowritebarrierrec
func pollerSleeps(delay int64) {
	p := virtualClock
	if p == nil || delay == 0 {
		return
	}
	atomic.Storeint64(&p.poller, int64(getg().m.procid))
	atomic.Storeint64(&p.next, sched.pollUntil.Load())
	countActive(-1)
}

//go:nowritebarrierrec
func pollerWakes(delay int64) {
	if delay != 0 {
		countActive(1)
	}
}

// isAdvance reports whether an event of the poller is an advance of the clock, and takes it.
//
//go:nowritebarrierrec
func isAdvance(ev *linux.EpollEvent, delay int64) bool {
	p := virtualClock
	if p == nil || *(**uintptr)(unsafe.Pointer(&ev.Data)) != &virtualClockWake {
		return false
	}
	// Only the waiting thread takes it, because it then looks at all timers again.
	if delay != 0 {
		var bytes [64]byte
		for read(int32(virtualClockWake), noescape(unsafe.Pointer(&bytes)), 64) > 0 {
		}
		atomic.Storeint64(&p.seen, atomic.Loadint64(&p.request))
	}
	return true
}

// virtualRand gives the functions of math/rand that share one source their numbers. Goroutines that
// share a sequence would draw from it in an order that no run repeats. So a number depends on the
// seed, the calls that led here, the instant, and how often that path drew in this instant.
//
//go:linkname virtualRand
func virtualRand() uint64 {
	p := virtualClock
	if p == nil {
		return rand()
	}
	var pcs [pathLength]uintptr
	path := uint64(p.seed)
	for _, pc := range pcs[:callers(1, pcs[:])] {
		path = mixBits(path ^ uint64(pc))
	}
	now := atomic.Loadint64(&p.now)
	lock(&virtualDraws.lock)
	i := path % pathCount
	for probes := 1; virtualDraws.paths[i].path != path && probes < pathCount; probes++ {
		if virtualDraws.paths[i].path == 0 {
			virtualDraws.paths[i].path = path
			break
		}
		i = (i + 1) % pathCount
	}
	at := &virtualDraws.paths[i]
	if at.now != now {
		at.now, at.count = now, 0
	}
	at.count++
	count := at.count
	unlock(&virtualDraws.lock)
	return mixBits(path ^ mixBits(uint64(now)^mixBits(count)))
}

// mixBits is a bijection of which every output bit depends on every input bit.
func mixBits(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func pollVirtualClock() {
	if virtualClock == nil {
		return
	}
	ev := linux.EpollEvent{Events: linux.EPOLLIN}
	*(**uintptr)(unsafe.Pointer(&ev.Data)) = &virtualClockWake
	if linux.EpollCtl(epfd, linux.EPOLL_CTL_ADD, int32(virtualClockWake), &ev) != 0 {
		throw("EQUIPOISE_CLOCK: epoll_ctl failed")
	}
}

func openVirtualClock(name, suffix string) int32 {
	const readWrite, nonBlocking, closeOnExec = 0x2, 0x800, 0x80000
	var path [4096]byte
	if len(name)+len(suffix) >= len(path) {
		throw("EQUIPOISE_CLOCK: the path is too long")
	}
	copy(path[:], name)
	copy(path[len(name):], suffix)
	fd := open(&path[0], readWrite|nonBlocking|closeOnExec, 0)
	if fd < 0 {
		throw("EQUIPOISE_CLOCK: open failed")
	}
	return fd
}

// initVirtualClock runs when the first thread is the only one and holds one processor.
func initVirtualClock() {
	name := gogetenv("EQUIPOISE_CLOCK")
	if name == "" {
		return
	}
	fd := openVirtualClock(name, "")
	const readWrite, shared = 3, 1
	page, failed := mmap(nil, virtualClockSize, readWrite, shared, fd, 0)
	if failed != 0 {
		throw("EQUIPOISE_CLOCK: mmap failed")
	}
	closefd(fd)
	p := (*virtualClockPage)(page)
	if p.magic != virtualClockMagic {
		throw("EQUIPOISE_CLOCK: the file is no clock page of this version")
	}
	pid := int64(getpid())
	if !atomic.Casint64(&p.pid, 0, pid) {
		throw("EQUIPOISE_CLOCK: the page belongs to another process")
	}
	virtualClockWake = uintptr(openVirtualClock(name, ".wake"))
	virtualClockIdle = uintptr(openVirtualClock(name, ".idle"))
	atomic.Storeint64(&p.state, oneChange+1)
	virtualClock = p
	netpollGenericInit()
}
