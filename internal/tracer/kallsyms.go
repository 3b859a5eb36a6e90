package tracer

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// kernelSymbol is a function of the kernel; Module is "" for one that is built in.
type kernelSymbol struct{ name, module string }

// kernelSymbols are functions by name and by address. Addresses are hidden from
// those who may not know them (kptr_restrict): then nothing is found.
type kernelSymbols struct {
	addresses map[string]uint64
	names     map[uint64]kernelSymbol
}

// findSymbols looks for functions by name and by address in one pass.
func findSymbols(names []string, addresses map[uint64]bool) (kernelSymbols, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return kernelSymbols{}, fmt.Errorf("looking for functions of the kernel: %w", err)
	}
	defer func() { _ = f.Close() }()
	return readSymbols(f, names, addresses)
}

// readSymbols reads lines such as "ffffffffc0a4b0f0 t rxe_post_send	[rdma_rxe]".
func readSymbols(from io.Reader, names []string, addresses map[uint64]bool) (kernelSymbols, error) {
	found := kernelSymbols{addresses: map[string]uint64{}, names: map[uint64]kernelSymbol{}}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			continue
		}
		address, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil || address == 0 {
			continue
		}
		symbol := kernelSymbol{name: fields[2]}
		if len(fields) > 3 {
			symbol.module = strings.Trim(fields[3], "[]")
		}
		if wanted[symbol.name] {
			found.addresses[symbol.name] = address
		}
		if addresses[address] && strings.ContainsAny(fields[1], "tTwW") {
			found.names[address] = symbol
		}
	}
	if err := lines.Err(); err != nil {
		return found, fmt.Errorf("reading /proc/kallsyms: %w", err)
	}
	return found, nil
}
