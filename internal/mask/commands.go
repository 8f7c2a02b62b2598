package mask

import "strings"

// Programs that take a secret in a short option or a bare word, which no name
// gives away: mysql -pSECRET, curl -u me:SECRET, wandb login SECRET.
var (
	mysql  = program{glued: "-p"}
	ssh    = program{glued: "-p", apart: "-p"}
	redis  = program{apart: "-a"}
	curl   = program{glued: "-u", apart: "-u", long: "--user", pair: true}
	images = program{login: true, apart: "-p"}
	wandb  = program{login: true, bare: true}
)

// programOf returns what is known of a program, or nil. A switch: Text asks for
// every word of a log.
func programOf(word string) *program {
	switch word {
	case "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump":
		return &mysql
	case "sshpass":
		return &ssh
	case "redis-cli":
		return &redis
	case "curl":
		return &curl
	case "docker", "podman", "nerdctl", "skopeo", "helm", "oras", "apptainer", "singularity":
		return &images
	case "wandb":
		return &wandb
	}
	return nil
}

// program says where a command line holds a secret.
type program struct {
	login bool   // only after the word login: docker run -p is a port
	glued string // option with the secret right behind it
	apart string // option with the secret in the next word
	long  string // the same, spelled out
	pair  bool   // the value is user:secret
	bare  bool   // a long word with a digit is the secret
}

// command is the command line that Text is in.
type command struct {
	*program      // nil: none of them
	armed    bool // its secret may come now
}

// at takes the next word, s[i:j], and returns the range of the secret that
// belongs to it, or an empty one.
func (c *command) at(s string, i, j int, word string) (from, to int) {
	if p := programOf(word); p != nil {
		*c = command{p, !p.login}
		return 0, 0
	}
	switch {
	case c.program == nil:
		return 0, 0
	case !c.armed:
		c.armed = word == "login"
		return 0, 0
	case c.bare && len(word) >= 20 && strings.ContainsAny(word, "0123456789"):
		return i, j
	case word != "" && (word == c.apart || word == c.long):
		if k := skipBlanks(s, j); k > j {
			return c.value(s, k)
		}
	}
	if c.glued != "" && strings.HasPrefix(word, c.glued) {
		return c.value(s, i+len(c.glued))
	}
	return 0, 0
}

// value returns the secret in the value that starts at k.
func (c *command) value(s string, k int) (from, to int) {
	if k < len(s) && (s[k] == '"' || s[k] == '\'') {
		from, to = quoted(s, k)
	} else {
		from, to = k, valueEnd(s, k)
	}
	if c.pair {
		colon := strings.IndexByte(s[from:to], ':')
		if colon < 0 {
			return 0, 0
		}
		from += colon + 1
	}
	if from < to && s[from] == '$' { // a variable is no secret
		return 0, 0
	}
	return from, to
}
