// SPDX-License-Identifier: Apache-2.0

// io.Copy between files (copy_file_range), pipes (splice) and sockets, goroutines on threads,
// a child process.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func copyFile() {
	from := must(os.Create("from"))
	must(from.Write(make([]byte, 5<<20)))
	must(from.Seek(0, io.SeekStart))
	to := must(os.Create("to"))
	n := must(io.Copy(to, from))
	fmt.Printf("file %d %x\n", n, sha256.Sum256(must(os.ReadFile("to"))))
}

func copySocket() {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() {
		c := must(listener.Accept())
		f := must(os.Open("from"))
		io.Copy(c, f)
		c.Close()
	}()
	c := must(net.Dial("tcp", listener.Addr().String()))
	fmt.Println("socket", must(io.Copy(io.Discard, c)))
}

func threads() {
	var group sync.WaitGroup
	var lock sync.Mutex
	sum := 0
	for i := 0; i < 16; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			runtime.LockOSThread()
			lock.Lock()
			defer lock.Unlock()
			sum += i
		}(i)
	}
	group.Wait()
	fmt.Println("threads", sum)
}

func main() {
	copyFile()
	copySocket()
	threads()
	fmt.Printf("child %s", must(exec.Command("echo", "went well").Output()))
}
