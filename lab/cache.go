package lab

import (
	"os"
	"path/filepath"
)

// CacheDir is the folder where deps.sh keeps what it downloads, by the same rules.
func CacheDir() string {
	if d := os.Getenv("NCCLINIC_CACHE"); d != "" {
		return d
	}
	if os.Getuid() == 0 {
		return "/var/cache/ncclinic-test"
	}
	d, err := os.UserCacheDir()
	if err != nil {
		d = os.TempDir()
	}
	return filepath.Join(d, "ncclinic-test")
}
