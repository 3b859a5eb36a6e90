package tracer

import "github.com/rdmaradar/rdmaradar/internal/provider"

// openCache opens what is known of libraries from earlier starts, nil where
// nothing is kept. Without it everything is found and verified anew, so no
// failure is one of the tracer.
func openCache(cfg Config) *provider.Cache {
	if cfg.CacheDirectory == "" {
		return nil
	}
	cache, err := provider.OpenCache(cfg.CacheDirectory, func(err error) {
		cfg.Logger.Warn("a file of the cache was not used or not written", "directory", cfg.CacheDirectory, "error", err)
	})
	if err != nil {
		cfg.Logger.Warn("what is found out about libraries is not kept for the next start: the cache directory cannot be used",
			"directory", cfg.CacheDirectory, "error", err)
		return nil
	}
	return cache
}
