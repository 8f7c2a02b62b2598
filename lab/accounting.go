package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// accountingTools are the programs that Options.Accounting needs beside the rest.
var accountingTools = []string{"slurmdbd", "mariadbd", "sacct", "sacctmgr"}

// MissingAccounting names the programs that Options.Accounting needs and that
// this machine lacks.
func MissingAccounting() []string {
	var missing []string
	for _, t := range accountingTools {
		if find(t) == "" {
			missing = append(missing, t)
		}
	}
	return missing
}

// accounting is a database and slurmdbd in front of it.
type accounting struct {
	dbPort, port int
	password     string
}

// accountingConf are the lines of slurm.conf that go with it.
func (a *accounting) conf(munge string) []string {
	return []string{
		// Its clients take the socket of munge from here and not from AuthInfo.
		"AccountingStoragePass=" + munge,
		"AccountingStorageType=accounting_storage/slurmdbd",
		"AccountingStorageHost=127.0.0.1",
		fmt.Sprintf("AccountingStoragePort=%d", a.port),
		"AccountingStorageTRES=gres/gpu",
		"AccountingStoreFlags=job_script,job_comment",
		"JobAcctGatherType=jobacct_gather/linux",
		"JobAcctGatherFrequency=task=1",
	}
}

func newAccounting() (*accounting, error) {
	p, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 16)
	rand.Read(b)
	return &accounting{dbPort: p, port: p + 1, password: hex.EncodeToString(b)}, nil
}

// startAccounting makes an empty database and starts it and slurmdbd; munge
// must run already.
func (c *Cluster) startAccounting(ctx context.Context, a *accounting, conf *config) error {
	if m := MissingAccounting(); len(m) > 0 {
		return fmt.Errorf("%s not found; lab/deps.sh installs what is needed", strings.Join(m, ", "))
	}
	data := c.path("db")
	if err := c.bootstrap(ctx, data, conf.user); err != nil {
		return err
	}
	// The file is read at the start; nobody but its owner sees the password.
	first := c.path("run", "first.sql")
	sql := fmt.Sprintf("CREATE DATABASE slurm_acct_db;\nCREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY '%s';\n"+
		"GRANT ALL ON slurm_acct_db.* TO 'slurm'@'127.0.0.1';\n", a.password)
	if err := os.WriteFile(first, []byte(sql), 0o600); err != nil {
		return err
	}
	err := c.daemon("mariadbd", find("mariadbd"), "--no-defaults", "--datadir="+data, "--user="+conf.user,
		"--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", a.dbPort), "--socket="+c.path("run", "db.socket"),
		"--pid-file="+c.path("run", "db.pid"), "--init-file="+first, "--skip-name-resolve", "--innodb-buffer-pool-size=64M",
		"--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=900")
	if err != nil {
		return err
	}
	if err := listening(ctx, a.dbPort); err != nil {
		return fmt.Errorf("mariadbd: %w", err)
	}
	text := strings.Join([]string{
		"DbdHost=" + conf.host,
		"DbdAddr=127.0.0.1",
		fmt.Sprintf("DbdPort=%d", a.port),
		"SlurmUser=" + conf.user,
		"AuthType=auth/munge",
		"AuthInfo=socket=" + c.path("run", "munge.socket"),
		"LogFile=" + c.path("log", "slurmdbd.log"),
		"PidFile=" + c.path("run", "slurmdbd.pid"),
		"DebugLevel=info",
		"StorageType=accounting_storage/mysql",
		"StorageHost=127.0.0.1",
		fmt.Sprintf("StoragePort=%d", a.dbPort),
		"StorageUser=slurm",
		"StoragePass=" + a.password,
		"StorageLoc=slurm_acct_db",
		"CommitDelay=0",
	}, "\n")
	if err := os.WriteFile(c.path("slurmdbd.conf"), []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	if err := c.daemon("slurmdbd", find("slurmdbd"), "-D"); err != nil {
		return err
	}
	if err := listening(ctx, a.port); err != nil {
		return fmt.Errorf("slurmdbd: %w", err)
	}
	var out []byte
	for {
		// Tables are made at the first start; until then it refuses.
		if out, err = c.Command(ctx, "sacctmgr", "--immediate", "add", "cluster", c.Name).CombinedOutput(); err == nil {
			return nil
		}
		if e := sleep(ctx, 100*time.Millisecond); e != nil {
			return fmt.Errorf("sacctmgr add cluster: %w: %s", err, out)
		}
	}
}

// systemTables are the files from which MariaDB's own tables are made, in order.
var systemTables = []string{"mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"}

// bootstrap makes an empty database as mariadb-install-db does, which is not in
// the package of the server itself.
func (c *Cluster) bootstrap(ctx context.Context, data, user string) error {
	if err := os.MkdirAll(filepath.Join(data, "mysql"), 0o700); err != nil {
		return err
	}
	in := []io.Reader{strings.NewReader("USE mysql;\nSET @auth_root_socket=NULL;\n")}
	for _, name := range systemTables {
		f, err := os.Open("/usr/share/mysql/" + name)
		if err != nil {
			f, err = os.Open("/usr/share/mariadb/" + name)
		}
		if err != nil {
			return err
		}
		defer f.Close()
		in = append(in, f)
	}
	cmd := exec.CommandContext(ctx, find("mariadbd"), "--no-defaults", "--bootstrap", "--datadir="+data, "--user="+user,
		"--log-warnings=0", "--enforce-storage-engine=", "--innodb-log-file-size=16M", "--plugin-load-add=")
	cmd.Env = c.baseEnv()
	cmd.Stdin = io.MultiReader(in...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadbd --bootstrap: %w: %s", err, out)
	}
	return nil
}

// listening waits until somebody answers on a port of this machine.
func listening(ctx context.Context, port int) error {
	for {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return conn.Close()
		}
		if e := sleep(ctx, 20*time.Millisecond); e != nil {
			return err
		}
	}
}
