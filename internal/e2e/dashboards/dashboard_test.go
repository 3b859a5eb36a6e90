//go:build backends

package dashboards

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dashboard is as much of Grafana's model as has queries.
type dashboard struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

type panel struct {
	ID      int
	Title   string
	Targets []target
	GridPos struct{ X, Y, W, H int }
}

type target struct {
	Expr, LegendFormat string
	Instant            bool
	Datasource         struct{ Type, UID string }
}

// shipped returns the dashboards by their UID.
func shipped(t *testing.T) map[string]dashboard {
	t.Helper()
	paths, err := filepath.Glob("../../../config/grafana/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	all := map[string]dashboard{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var d dashboard
		require.NoError(t, json.Unmarshal(text, &d), path)
		assert.Equal(t, d.UID+".json", filepath.Base(path))
		all[d.UID] = d
	}
	return all
}

// query is an expression as Grafana sends it, with these values of its variables.
func query(expression string, variables map[string]string) string {
	replacements := []string{"$__rate_interval", "1m"}
	for name, value := range variables {
		replacements = append(replacements, "$"+name, value)
	}
	return strings.NewReplacer(replacements...).Replace(expression)
}

// everything are values of variables with which a panel shows all there is.
var everything = map[string]string{"node": ".*", "device": ".*", "cause": ".*"}

func TestDashboardsAreWhole(t *testing.T) {
	all := shipped(t)
	assert.Len(t, all, 3)
	for _, d := range all {
		ids, cells := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			assert.False(t, ids[p.ID], "%s: two panels have the id %d", d.UID, p.ID)
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					assert.Empty(t, cells[[2]int{x, y}], "%s: %q lies upon another panel", d.UID, p.Title)
					cells[[2]int{x, y}] = p.Title
				}
			}
			assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, "%s: %q", d.UID, p.Title)
			for _, of := range p.Targets {
				assert.Equal(t, "${datasource}", of.Datasource.UID, "%s: %q", d.UID, p.Title)
				assert.NotContains(t, query(of.Expr, everything), "$", "%s: %q has a variable that is not known", d.UID, p.Title)
			}
		}
	}
}
