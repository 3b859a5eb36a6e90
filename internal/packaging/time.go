package packaging

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// SourceTime returns when the sources were last changed: SOURCE_DATE_EPOCH if that is
// set (https://reproducible-builds.org/specs/source-date-epoch), else the time of the
// checked-out commit.
func SourceTime(repository string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		command := exec.Command("git", "log", "-1", "--format=%ct")
		command.Dir = repository
		out, err := command.Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("ask git for the time of the commit: %w; without git set SOURCE_DATE_EPOCH", err)
		}
		text = string(out)
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the sources: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
