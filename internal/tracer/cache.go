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

// attachKnown observes a poll_cq at its completion sites alone where comparing
// them showed that they are right, and reports whether it did: no probe ever
// stands on its entry and return then.
func (k *kernelSide) attachKnown(f *pollFunction, library *provider.Library, kind linkKind) (bool, error) {
	if f.sites == nil || k.verdicts.Of(library, f.target.Offset) != provider.Verified {
		return false, nil
	}
	if err := k.attachSites(f, kind); err != nil {
		// It is attached with entry and return, or refused, like any other.
		return false, closeAll(&f.site)
	}
	f.enterMode(modeSite)
	return true, nil
}
