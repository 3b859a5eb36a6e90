package fabric

import (
	"fmt"
	"regexp"
	"strconv"
)

// linkRate is a port's attribute rate, such as "400 Gb/sec (4X NDR)".
type linkRate struct {
	bitsPerSecond float64
	// generation is the name of the signalling rate, "" in the output of old
	// kernels for SDR.
	generation string
	// lanes is the width of the link.
	lanes int
}

// rateForm is what the kernel's rate_show prints (drivers/infiniband/core/sysfs.c).
const rateForm = `^([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec \(([0-9]{1,3})X(?: ([A-Z]+[0-9]*))?\)$`

func parseRate(text string) (linkRate, error) {
	match := regexp.MustCompile(rateForm).FindStringSubmatch(text)
	if match == nil {
		return linkRate{}, fmt.Errorf("rate %q is not of the form %q", shorten(text), "400 Gb/sec (4X NDR)")
	}
	gigabits, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		return linkRate{}, fmt.Errorf("rate %q: %w", shorten(text), err)
	}
	lanes, err := strconv.Atoi(match[2])
	if err != nil {
		return linkRate{}, fmt.Errorf("rate %q: %w", shorten(text), err)
	}
	return linkRate{bitsPerSecond: gigabits * 1e9, generation: match[3], lanes: lanes}, nil
}

// dataRate is what is left for data, in bits per second; 0 when not known.
//
// InfiniBand names a link up to QDR by its signalling rate, of which the 8b/10b
// code leaves four fifths, and FDR by a rounded one: 14.0625 GBd, of which
// 64b/66b leaves 13.64 Gb/s a lane. FDR10, EDR and what came later are named by
// the data rate (InfiniBand Architecture Specification, volume 2).
//
// On Ethernet SDR is what the kernel says when it does not know the speed, or
// when it is 1 Gb/s (ib_get_eth_speed in drivers/infiniband/core/verbs.c). The
// others are data rates.
func (r linkRate) dataRate(linkLayer string) float64 {
	switch r.generation {
	case "", "SDR":
		if linkLayer == LinkLayerEthernet {
			return 0
		}
		return byLayer(linkLayer, r.bitsPerSecond, 8.0/10)
	case "DDR", "QDR":
		return byLayer(linkLayer, r.bitsPerSecond, 8.0/10)
	case "FDR":
		return byLayer(linkLayer, r.bitsPerSecond, 14.0625/14*64/66)
	default:
		return r.bitsPerSecond
	}
}

func byLayer(linkLayer string, bitsPerSecond, code float64) float64 {
	if linkLayer != LinkLayerInfiniBand {
		return bitsPerSecond
	}
	return bitsPerSecond * code
}

// shorten keeps foreign text from filling a log.
func shorten(text string) string {
	return text[:min(len(text), 64)]
}
