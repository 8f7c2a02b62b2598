package fact

// NodeSet is what the probes of one job step saw, one on each node, merged:
// equal nodes are told once. Lists of nodes are in Slurm's folded form, such as
// n[1-7,9]; the names in them hold nothing but letters, digits, dots, dashes
// and underscores.
type NodeSet struct {
	Job  string `json:"job,omitempty"`
	Step string `json:"step,omitempty"`
	// Expected are the nodes that should have reported, in Slurm's order.
	Expected string `json:"expected,omitempty"`
	Total    int    `json:"total"`           // how many those are
	Reported int    `json:"reported"`        // how many reported
	First    string `json:"first,omitempty"` // the node on which task 0 runs

	Missing []NodeFault `json:"missing,omitempty"` // nodes that did not report, and what is known of why
	// Odd are lines of the step's output that should not have been there: a report
	// that was cut off, a second one, one in another node's name.
	Odd []NodeFault `json:"odd,omitempty"`

	Groups   []NodeGroup `json:"groups,omitempty"`   // nodes whose facts are alike, largest group first
	Compared []Compared  `json:"compared,omitempty"` // what was compared, by name

	Resolve  []Resolved     `json:"resolve,omitempty"`  // what MASTER_ADDR is on the nodes
	PortFree Val[bool]      `json:"portFree,omitzero"`  // MASTER_PORT is free on the first node
	Reach    Val[Reach]     `json:"reach,omitzero"`     // NotLooked: not tested
	Group    Val[GroupTest] `json:"groupTest,omitzero"` // --live: a real process group over all ranks

	Slowest string  `json:"slowest,omitempty"` // the node that reported last
	Seconds float64 `json:"seconds,omitempty"` // from the start of the step to its end
}

// NodeFault is something that is said of one or several nodes.
type NodeFault struct {
	Nodes string `json:"nodes,omitempty"` // "" when it cannot be told which
	Kind  string `json:"kind"`            // see Fault… constants
	Why   string `json:"why,omitempty"`   // Slurm's or the probe's own words
	Count int    `json:"count,omitempty"` // of nodes or lines
}

// Kinds of NodeFault.
const (
	FaultNodeFailed = "node-failed" // Slurm says that the node failed or could not be reached
	FaultKilled     = "killed"      // the probe ended by a signal or with a status
	FaultLaunch     = "launch"      // the probe could not be started there
	FaultSilent     = "silent"      // nothing came within the time limit
	FaultCut        = "cut"         // a report that is not whole
	FaultTwice      = "twice"       // a second report from one task
	FaultOtherName  = "other-name"  // a report in the name of another node than the task's
	FaultBadName    = "bad-name"    // a node name with characters that no node name has
	FaultForeign    = "foreign"     // a line that imitates a report
	FaultTooLong    = "too-long"    // a report that is longer than allowed
)

// NodeGroup are nodes whose facts are alike except for what is each node's own:
// names, addresses, serial numbers, free memory.
type NodeGroup struct {
	Nodes  string  `json:"nodes"`
	Count  int     `json:"count"`
	Bundle *Bundle `json:"bundle,omitempty"` // the facts of one of them
}

// Compared is one thing that was compared over the nodes, such as
// torch.version. One value: it is the same everywhere.
type Compared struct {
	Name   string     `json:"name"`
	Values []ValueFor `json:"values"` // the most frequent one first
	// Unknown are the nodes on which nobody could tell.
	Unknown string `json:"unknown,omitempty"`
}

// ValueFor is a value and the nodes that have it. NoValue stands for "there is none".
type ValueFor struct {
	Value string `json:"value"`
	Nodes string `json:"nodes,omitempty"`
	Count int    `json:"count"`
}

// NoValue is the value of a thing that is not there: a variable that is not set.
const NoValue = "(none)"

// Resolved says to what MASTER_ADDR resolves on some nodes.
type Resolved struct {
	Name  string   `json:"name"`
	Addrs []string `json:"addrs,omitempty"`
	Error string   `json:"error,omitempty"`
	Nodes string   `json:"nodes"`
	Count int      `json:"count"`
	// Wrong says that none of the addresses is one of the first node's.
	Wrong bool `json:"wrong,omitempty"`
	// Default says that MASTER_ADDR is not set and the first node's name was tried.
	Default bool `json:"default,omitempty"`
}

// Reach is the outcome of connecting nodes with each other.
type Reach struct {
	Nodes  int       `json:"nodes"`  // how many took part
	Tested int       `json:"tested"` // connections that were tried
	Good   int       `json:"good"`
	Ways   []Way     `json:"ways,omitempty"`
	Faults []NoReach `json:"faults,omitempty"` // connections that failed, the first hundreds
	Failed int       `json:"failed"`           // how many failed
	// Explain is the smallest set of nodes, or of pairs of networks, that explains all faults.
	Explain []Blame `json:"explain,omitempty"`
}

// Way counts the connections of one kind.
type Way struct {
	Way    string `json:"way"`
	Tested int    `json:"tested"`
	Failed int    `json:"failed"`
}

// Ways on which a connection was tried.
const (
	WayNCCL   = "nccl"   // the address of the interface that NCCL would choose
	WayGloo   = "gloo"   // the one that Gloo would choose
	WayBoth   = "both"   // NCCL and Gloo would choose the same
	WayMaster = "master" // MASTER_ADDR and MASTER_PORT
)

// NoReach is a connection that failed.
type NoReach struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Way   string `json:"way"`
	Iface string `json:"iface,omitempty"` // of the node that was to be reached
	Addr  string `json:"addr,omitempty"`
	Error string `json:"error"` // see Reach… constants, or the system's words
}

// Errors of NoReach.
const (
	ReachTimeout = "timeout"
	ReachRefused = "refused"
	ReachNoRoute = "no-route"
	ReachOther   = "other-peer" // somebody else answered: two machines have the address
	ReachClosed  = "closed"     // connected, and no answer came: something in between
)

// Blame is a part of the explanation why nodes do not reach each other.
type Blame struct {
	Kind   string `json:"kind"`            // see Blame… constants
	Nodes  string `json:"nodes,omitempty"` // for subnets: the nodes of the first one
	Other  string `json:"other,omitempty"` // for subnets: the nodes of the second one
	Net    string `json:"net,omitempty"`
	Net2   string `json:"net2,omitempty"`
	Way    string `json:"way,omitempty"`
	Faults int    `json:"faults"` // how many failed connections it explains
}

// Kinds of Blame.
const (
	BlameIn     = "in"      // nobody who tried reaches these nodes, they reach others
	BlameOut    = "out"     // these nodes reach nobody, others reach them
	BlameNode   = "node"    // neither
	BlameSubnet = "subnets" // the nodes of two networks do not reach each other
	BlameOneWay = "one-way" // the nodes of the first network do not reach those of the second
	BlamePair   = "pair"    // single pairs
)

// GroupTest is the outcome of a real process group over all ranks.
type GroupTest struct {
	Backend string      `json:"backend"` // nccl or gloo
	World   int         `json:"world"`
	Good    int         `json:"good"`            // ranks that finished everything
	Addr    string      `json:"addr"`            // host:port of the store
	First   *RankFault  `json:"first,omitempty"` // the first rank that failed
	Faults  []RankFault `json:"faults,omitempty"`
	// Shared are the devices that several ranks took.
	Shared  []SharedDevice `json:"shared,omitempty"`
	Seconds float64        `json:"seconds,omitempty"`
}

// RankFault says how far a rank came.
type RankFault struct {
	Rank  int    `json:"rank"`
	Node  string `json:"node"`
	Step  string `json:"step"` // import, device, init, all_reduce, all_gather; "" when it never started
	Error string `json:"error,omitempty"`
	Waits bool   `json:"waits,omitempty"` // it only waited for others: a time-out, a closed connection
}

// SharedDevice is a GPU that several ranks took.
type SharedDevice struct {
	Node   string `json:"node"`
	Device string `json:"device"`
	Ranks  []int  `json:"ranks"`
}
