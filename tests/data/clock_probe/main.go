// A program that does one thing with time, named by its first argument. Tests run it on a virtual
// clock and compare what it prints with what the meaning of package time says.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	randv2 "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"
)

var (
	printing sync.Mutex
	started  = time.Now()
)

func say(words ...any) {
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(words...)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// elapsed rounds, because the readings at the start were some ns after the instant of the start.
func elapsed() int64 {
	return time.Since(started).Round(time.Millisecond).Milliseconds()
}

type operation struct {
	Kind  string
	NS    int64
	Other int64
}

// silent returns a connection on which nothing ever arrives.
func silent() net.Conn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	conn, err := net.Dial("tcp", listener.Addr().String())
	must(err)
	_, err = listener.Accept()
	must(err)
	return conn
}

// wait takes exactly d of virtual time, or up to the readings of the clock more for deadlines.
func (o operation) wait(conn net.Conn) {
	d := time.Duration(o.NS)
	switch o.Kind {
	case "sleep":
		time.Sleep(d)
	case "timer":
		<-time.NewTimer(d).C
	case "after":
		<-time.After(d)
	case "func":
		done := make(chan bool)
		time.AfterFunc(d, func() { close(done) })
		<-done
	case "select":
		never := make(chan bool)
		select {
		case <-never:
		case <-time.After(d + time.Duration(o.Other)):
		case <-time.After(d):
		}
	case "reset":
		timer := time.NewTimer(time.Duration(o.Other))
		timer.Reset(d)
		<-timer.C
	case "stop":
		timer := time.NewTimer(d / 2)
		other := time.AfterFunc(d/3, func() { panic("a stopped timer ran") })
		timer.Stop()
		other.Stop()
		time.Sleep(d)
	case "ticker":
		ticker := time.NewTicker(d / 4)
		for range 4 {
			<-ticker.C
		}
		ticker.Stop()
	case "context":
		ctx, cancel := context.WithTimeout(context.Background(), d)
		<-ctx.Done()
		cancel()
	case "deadline":
		must(conn.SetReadDeadline(time.Now().Add(d)))
		_, err := conn.Read(make([]byte, 1))
		if !os.IsTimeout(err) {
			panic(err)
		}
	default:
		panic(o.Kind)
	}
}

// programs runs the goroutines that standard input lists; each says when each operation ended.
func programs() {
	var all [][]operation
	must(json.NewDecoder(os.Stdin).Decode(&all))
	conns := make([]net.Conn, len(all))
	for i := range all {
		conns[i] = silent()
	}
	var group sync.WaitGroup
	for i, operations := range all {
		group.Go(func() {
			for j, each := range operations {
				each.wait(conns[i])
				say(i, j, time.Since(started).Nanoseconds())
			}
		})
	}
	group.Wait()
}

func readings() {
	for range 1000 {
		say(time.Now().UnixNano())
	}
	first := time.Now()
	if first.After(time.Now()) || time.Since(first) < 0 || !first.Before(time.Now()) {
		panic("the clock goes back")
	}
}

// collect makes garbage while the clock stands.
func collect() {
	kept := make([][]byte, 1000)
	for i := range 300_000 {
		kept[i%len(kept)] = make([]byte, 4096+i%4096)
	}
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	say("collections", stats.NumGC, time.Since(started).Nanoseconds())
	for range 3 {
		time.Sleep(time.Hour)
		kept[0] = make([]byte, 1<<24)
		runtime.GC()
	}
	say("slept", time.Since(started).Nanoseconds())
}

func timers(count int) {
	var group sync.WaitGroup
	fired := make([]int64, count)
	for i := range count {
		group.Add(1)
		d := time.Duration(1+i*7919%200) * time.Millisecond
		time.AfterFunc(d, func() {
			fired[i] = elapsed() - d.Milliseconds()
			group.Done()
		})
	}
	group.Wait()
	late := 0
	for _, by := range fired {
		if by != 0 {
			late++
		}
	}
	say("late", late)
}

func requests() {
	mux := http.NewServeMux()
	mux.HandleFunc("/now", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "now") })
	mux.HandleFunc("/later", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(3 * time.Second)
		io.WriteString(w, "later")
	})
	mux.HandleFunc("/never", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go http.Serve(listener, mux)
	client := &http.Client{Timeout: 5 * time.Second}
	for _, path := range []string{"/now", "/later", "/never", "/now"} {
		answer, err := client.Get("http://" + listener.Addr().String() + path)
		text := []byte("timeout")
		if err == nil {
			text, err = io.ReadAll(answer.Body)
			must(err)
			answer.Body.Close()
		} else if !os.IsTimeout(err) {
			panic(err)
		}
		say(path, string(text), elapsed())
	}
}

// threads starts, locks and ends threads, changes their number, runs a process, takes a signal.
func threads() {
	var group sync.WaitGroup
	for i := range 20 {
		runtime.GOMAXPROCS(1 + i%5)
		group.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends
			time.Sleep(time.Duration(1+i%3) * time.Second)
		})
	}
	group.Wait()
	must(exec.Command("sleep", "0.05").Run())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	must(syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	<-signals
	say("threads", elapsed())
	time.Sleep(time.Second)
	say("end", elapsed())
}

// signals takes a signal that the program sends to itself, again and again: the kernel wakes the
// main thread for it, whichever thread has sent it.
func signals(count int) {
	taken := make(chan os.Signal, 1)
	signal.Notify(taken, syscall.SIGUSR1)
	for range count {
		time.Sleep(time.Millisecond)
		must(syscall.Kill(os.Getpid(), syscall.SIGUSR1))
		<-taken
	}
	say("taken", elapsed())
}

// draws lets goroutines draw random numbers at once, some of them also in other places.
func draws() {
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			for range 200 {
				say("drawn", i, rand.Intn(1_000_000), randv2.IntN(1_000_000))
				runtime.Gosched()
			}
		})
		group.Go(func() {
			for range 1000 {
				rand.Float64()
				runtime.Gosched()
			}
		})
	}
	group.Wait()
}

func lines() {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		say(input.Text(), elapsed())
	}
}

// connect keeps two sockets to the address that it is given. It answers a line on the first one
// after as many milliseconds as the line says, and looks for the end of the second one.
func connect(address string) {
	conn, err := net.Dial("tcp", address)
	must(err)
	other, err := net.Dial("tcp", address)
	must(err)
	go func() {
		io.Copy(io.Discard, other)
		say("closed", elapsed())
	}()
	input := bufio.NewScanner(conn)
	for input.Scan() {
		ms, err := strconv.Atoi(input.Text())
		must(err)
		time.Sleep(time.Duration(ms) * time.Millisecond)
		fmt.Fprintln(conn, elapsed())
	}
}

func main() {
	switch os.Args[1] {
	case "programs":
		programs()
	case "readings":
		readings()
	case "collect":
		collect()
	case "timers":
		count, err := strconv.Atoi(os.Args[2])
		must(err)
		timers(count)
	case "requests":
		requests()
	case "threads":
		threads()
	case "signals":
		count, err := strconv.Atoi(os.Args[2])
		must(err)
		signals(count)
	case "draws":
		draws()
	case "lines":
		lines()
	case "connect":
		connect(os.Args[2])
	case "busy":
		for {
		}
	case "deadlock":
		var lock sync.Mutex
		lock.Lock()
		go lock.Lock()
		silent().Read(make([]byte, 1))
	case "steps":
		count, err := strconv.Atoi(os.Args[2])
		must(err)
		for range count {
			time.Sleep(time.Millisecond)
		}
	}
}
