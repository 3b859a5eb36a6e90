package packaging

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Version returns the version of the distribution, which stands in the manifest of the
// collector builder alone.
func Version(repository string) (string, error) {
	const name = "builder-config.yaml"
	text, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		return "", fmt.Errorf("version of the distribution: %w", err)
	}
	var manifest struct {
		Dist struct {
			Version string `json:"version"`
		} `json:"dist"`
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		return "", fmt.Errorf("version of the distribution: %s: %w", name, err)
	}
	if manifest.Dist.Version == "" {
		return "", fmt.Errorf("%s has no dist.version: set it", name)
	}
	return manifest.Dist.Version, nil
}
