package mask

import "strings"

// Programs that take a secret in a short option or a bare word, which no name
// gives away: mysql -pSECRET, curl -u me:SECRET, wandb login SECRET.
var (
	mysql   = program{glued: "-p"}
	ssh     = program{glued: "-p", apart: "-p"}
	redis   = program{apart: "-a"}
	curl    = program{glued: "-u", apart: "-u", long: "--user", pair: ':', flags: "sSfLkgivnNIjJORZ#0123469aGlp"}
	images  = program{login: true, glued: "-p", apart: "-p"}
	wandb   = program{login: true, bare: true}
	mongo   = program{apart: "-p"}
	ldap    = program{apart: "-w"}
	capital = program{glued: "-P", apart: "-P"}
	samba   = program{apart: "-U", long: "--user", pair: '%'}
	lftp    = program{apart: "-u", long: "--user", pair: ','}
	keygen  = program{apart: "-N"}
	openssl = program{apart: "-passin", long: "-passout", pair: ':', scheme: "pass"}
	netrc   = program{login: true, apart: "password", lines: true}
)

// programOf returns what is known of a program, or nil. A switch: Text asks for
// every word of a log.
func programOf(word string) *program {
	switch word {
	case "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump", "7z", "7za", "7zr":
		return &mysql
	case "sshpass":
		return &ssh
	case "redis-cli":
		return &redis
	case "curl":
		return &curl
	case "docker", "podman", "nerdctl", "skopeo", "helm", "oras", "apptainer", "singularity", "buildah", "crane", "az", "oc":
		return &images
	case "wandb":
		return &wandb
	case "mongo", "mongosh", "mongodump", "mongorestore", "twine":
		return &mongo
	case "ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami":
		return &ldap
	case "ipmitool", "zip", "unzip", "sqlcmd", "bcp":
		return &capital
	case "smbclient":
		return &samba
	case "lftp":
		return &lftp
	case "ssh-keygen":
		return &keygen
	case "openssl":
		return &openssl
	case "machine": // a line of .netrc
		return &netrc
	}
	return nil
}

// program says where a command line holds a secret.
type program struct {
	login  bool   // only after the word login: docker run -p is a port
	glued  string // option with the secret right behind it
	apart  string // option with the secret in the next word
	long   string // the same, spelled out
	pair   byte   // the value is user, this byte and the secret
	scheme string // what stands for the user then, and nothing else
	flags  string // letters that may stand before that of apart: curl -sSu
	bare   bool   // a long word with a digit is the secret
	lines  bool   // it goes on over lines
}

// command is the command line that Text is in.
type command struct {
	*program      // nil: none of them
	armed    bool // its secret may come now
}

// end is told of the byte at i, which ends a command unless it is a line that goes on.
func (c *command) end(s string, i int) {
	if c.program == nil {
		return
	}
	if s[i] == '\n' {
		if i > 0 && (s[i-1] == '\\' || s[i-1] == '\r' && i > 1 && s[i-2] == '\\') {
			return
		}
		if k := skipBlanks(s, i+1); c.lines && foldAny(s[k:wordEnd(s, k)], "login", "password", "account") {
			return
		}
	}
	*c = command{}
}

// at takes the next word, s[i:j], and returns the range of the secret that
// belongs to it, or an empty one.
func (c *command) at(s string, i, j int, word string) (from, to int) {
	if word == "echo" || word == "printf" {
		return piped(s, j)
	}
	if p := programOf(word); p != nil {
		*c = command{p, !p.login}
		return 0, 0
	}
	switch {
	case word == "--creds" || word == "--src-creds" || word == "--dest-creds" || word == "--proxy-user":
		return pairValue.value(s, next(s, j))
	case c.program == nil:
		return 0, 0
	case !c.armed:
		c.armed = word == "login"
		return 0, 0
	case c.bare && len(word) >= 20 && strings.ContainsAny(word, "0123456789"):
		return i, j
	case c.takes(word):
		return c.value(s, next(s, j))
	}
	if c.glued != "" && strings.HasPrefix(word, c.glued) {
		return c.value(s, i+len(c.glued))
	}
	return 0, 0
}

var pairValue = program{pair: ':'}

// takes reports whether word is the option whose value is the secret.
func (p *program) takes(word string) bool {
	if word == p.apart || p.long != "" && word == p.long {
		return word != ""
	}
	if p.flags == "" || len(word) < 3 || word[0] != '-' || word[len(word)-1] != p.apart[1] {
		return false
	}
	return strings.Trim(word[1:len(word)-1], p.flags) == ""
}

// next returns where the value of the option that ends at j starts: in a command
// line, and in a list of quoted words.
func next(s string, j int) int {
	k := j
	if k < len(s) && s[k] == '=' {
		return k + 1
	}
	if k < len(s) && (s[k] == '"' || s[k] == '\'') {
		if k++; k < len(s) && s[k] == ',' {
			k++
		}
	}
	if n := skipBlanks(s, k); n > k {
		return n
	}
	return len(s)
}

// value returns the secret in the value that starts at k.
func (p *program) value(s string, k int) (from, to int) {
	if k >= len(s) {
		return 0, 0
	}
	if s[k] == '"' || s[k] == '\'' {
		from, to = quoted(s, k)
	} else {
		from, to = k, k
		for to < len(s) && s[to] > ' ' && strings.IndexByte("\"'&;<>)}]|", s[to]) < 0 {
			to++
		}
	}
	if p.pair != 0 {
		at := strings.IndexByte(s[from:to], p.pair)
		if at < 0 || p.scheme != "" && s[from:from+at] != p.scheme {
			return 0, 0
		}
		from += at + 1
	}
	if from < to && s[from] == '$' { // a variable is no secret
		return 0, 0
	}
	return from, to
}

// piped returns what an echo that ends at j writes when a program that reads a
// password from its standard input takes it: echo x | sudo -S, docker login
// --password-stdin.
func piped(s string, j int) (from, to int) {
	line := s[j:min(len(s), j+300)]
	if n := strings.IndexByte(line, '\n'); n >= 0 {
		line = line[:n]
	}
	words, reader, found := strings.Cut(line, "|")
	if !found || !takesSecret(reader) {
		return 0, 0
	}
	k := skipBlanks(s, j)
	for k+1 < j+len(words) && s[k] == '-' && s[k+1] != '-' { // echo -n
		k = skipBlanks(s, wordEnd(s, k))
	}
	if from, to = pairless.value(s, k); strings.Contains(s[from:to], "%s") { // printf '%s' x
		return pairless.value(s, next(s, to))
	}
	return from, to
}

var pairless program

// takesSecret reports whether what an echo is piped to reads a password, or makes
// a header of one.
func takesSecret(to string) bool {
	for _, p := range [...]string{"-stdin", "sudo -S", "kinit", "chpasswd", "cryptsetup", "base64"} {
		if strings.Contains(to, p) {
			return true
		}
	}
	return false
}
