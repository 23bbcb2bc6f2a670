// Spins in a goroutine, for as many seconds as the argument says. SPDX-License-Identifier: MIT
package main

import (
	"os"
	"strconv"
	"time"
)

//go:noinline
func spins(deep int) int {
	if deep > 0 {
		return spins(deep-1) + 1
	}
	sum := 0
	for i := 0; i < 1000000; i++ {
		sum = (sum*31 + i) % 65521
	}
	return sum
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	go func() {
		for {
			spins(20)
		}
	}()
	time.Sleep(time.Duration(seconds) * time.Second)
}
