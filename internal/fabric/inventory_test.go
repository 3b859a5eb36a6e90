package fabric

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

// Every tree gives just what is in its golden file. With UPDATE_GOLDEN set the
// files are written, and the test fails so that this cannot go unnoticed.
func TestInventory(t *testing.T) {
	for _, name := range fabrictest.Names() {
		t.Run(name, func(t *testing.T) {
			got, err := recorded(t, name).Inventory()
			require.NoError(t, err)
			text := strings.Join(known("", reflect.ValueOf(got)), "\n") + "\n"
			path := filepath.Join("testdata", "golden", name+".txt")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
				t.Error("the golden file was written")
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(want), text)
		})
	}
}

// known lists the values that are known, one a line. A pointer that is not nil
// counts, whatever it points to; else a zero value is one that is not known.
func known(name string, value reflect.Value) []string {
	if text, ok := printed(value); ok && text != "" {
		return []string{name + " = " + text}
	} else if ok {
		return nil
	}
	var lines []string
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			return nil
		}
		if inner := value.Elem(); inner.Kind() != reflect.Struct {
			return []string{fmt.Sprintf("%s = %v", name, inner)}
		}
		lines = append(lines, name+" is known")
		return append(lines, known(name, value.Elem())...)
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			inner := name + "." + field.Name
			if field.Anonymous {
				inner = name
			}
			lines = append(lines, known(inner, value.Field(i))...)
		}
	case reflect.Slice:
		for i := range value.Len() {
			lines = append(lines, known(fmt.Sprintf("%s[%d]", name, i), value.Index(i))...)
		}
	case reflect.Map:
		keys := value.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, key := range keys {
			lines = append(lines, known(fmt.Sprintf("%s[%v]", name, key), value.MapIndex(key))...)
		}
	default:
		if !value.IsZero() {
			return []string{fmt.Sprintf("%s = %v", name, value)}
		}
	}
	return lines
}

// printed prints values that say themselves what they are, as "" when they are
// not known.
func printed(value reflect.Value) (text string, ok bool) {
	switch v := value.Interface().(type) {
	case []CPURange:
		return strings.Trim(fmt.Sprint(v), "[]"), true
	case *PCIeControl:
		if v == nil {
			return "", true
		}
		return fmt.Sprintf("%+v", *v), true
	case *ACS:
		if v == nil {
			return "", true
		}
		flags := strings.Fields(strings.Trim(fmt.Sprintf("%+v", *v), "{}"))
		return fmt.Sprint(slices.DeleteFunc(flags, func(f string) bool { return strings.HasSuffix(f, ":false") })), true
	case PCIeLink:
		if v == (PCIeLink{}) {
			return "", true
		}
		return fmt.Sprintf("%v GT/s x%d", v.GigatransfersPerSecond, v.Lanes), true
	case netip.Addr:
		if !v.IsValid() {
			return "", true
		}
		return v.String(), true
	default:
		return "", false
	}
}
