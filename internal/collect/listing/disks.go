package listing

import (
	"cmp"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	fullDisk  = lazyre.New(`^\s*(\S*)\s.*\s100%\s+(/\S*)$`)
	dfHead    = lazyre.New(`^Filesystem\b.*\bMounted on$`)
	quotaHead = lazyre.New(`^(?:Disk quotas for (?:user|usr|group|grp|prj|project) |\s*Filesystem\s+(?:blocks|kbytes|space|used)\s+quota\s+limit\b)`)
	quotaName = lazyre.New(`^\s*(\S*/\S*)$`)
	// what quota and lfs quota mark: used space or number of files, then the two limits
	overQuota = lazyre.New(`^\s*(\S*/\S*\s+)?(?:[\d.]+[kKMGTP]?(?:\s+[\d.]+[kKMGTP]?){2}\s+(?:\S+\s+)?)?[\d.]+[kKMGTP]?\*\s+[\d.]+[kKMGTP]?\s+[\d.]+[kKMGTP]?(?:\s|$)`)
)

// neverFull are where images are mounted that have no room by their nature.
var neverFull = []string{"/dev/shm", "/snap", "/var/lib/snapd", "/cvmfs", "/media", "/run", "/sys", "/boot/efi"}

// disks reads the tables of df, quota and lfs quota.
func (p *Parser) disks(msg string, add func(kind, name, v, aux string)) {
	if dfHead.MatchString(msg) || quotaHead.MatchString(msg) {
		add(kind.DiskTable, "", strings.Join(strings.Fields(msg), " "), "")
		p.disk = ""
		return
	}
	if m := fullDisk.FindStringSubmatch(msg); m != nil {
		for _, dir := range neverFull {
			if strings.HasPrefix(m[2], dir) {
				return
			}
		}
		if !strings.HasPrefix(m[1], "/dev/loop") && m[1] != "squashfs" && m[1] != "overlay" {
			add(kind.FullDisk, m[2], kind.Full, "")
		}
		return
	}
	long := p.disk // of a name that is too long for its column the numbers stand below
	p.disk = ""
	if m := quotaName.FindStringSubmatch(msg); m != nil {
		p.disk = m[1]
		return
	}
	if m := overQuota.FindStringSubmatch(msg); m != nil {
		if name := cmp.Or(strings.TrimSpace(m[1]), long); name != "" {
			add(kind.FullDisk, name, kind.OverQuota, "")
		}
	}
}
