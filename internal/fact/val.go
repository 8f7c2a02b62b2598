// Package fact holds what collectors saw: typed values that each say where
// they come from and whether anybody looked. It imports the standard library
// only, and nothing of this project.
package fact

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// State says what is known of a Val. The zero State is NotLooked, so a
// collector that forgets a field can never make a rule say "missing".
type State uint8

const (
	NotLooked State = iota // nobody looked
	Absent                 // somebody looked and it is not there; None is a value too
	Failed                 // somebody looked and could not tell; Why says why
	Known                  // V holds the value
)

var stateNames = [...]string{"notlooked", "absent", "failed", "known"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", s)
}

// Val is one observed value with its state and the place where it was seen.
type Val[T any] struct {
	V     T
	State State
	Why   string // for Failed: the error, short, without secrets
	At    Evidence
}

// Of returns a Known value seen at the given place.
func Of[T any](v T, at Evidence) Val[T] { return Val[T]{V: v, State: Known, At: at} }

// None returns an Absent value: somebody looked at the given place and found nothing.
func None[T any](at Evidence) Val[T] { return Val[T]{State: Absent, At: at} }

// Fail returns a Failed value; why is shown to people.
func Fail[T any](why string, at Evidence) Val[T] { return Val[T]{State: Failed, Why: why, At: at} }

// Get returns the value and reports whether it is Known.
func (v Val[T]) Get() (T, bool) { return v.V, v.State == Known }

// Or returns the value when it is Known and def otherwise.
func (v Val[T]) Or(def T) T {
	if v.State == Known {
		return v.V
	}
	return def
}

// IsKnown reports whether the value is there.
func (v Val[T]) IsKnown() bool { return v.State == Known }

// IsAbsent reports whether somebody looked and found nothing.
func (v Val[T]) IsAbsent() bool { return v.State == Absent }

// Looked reports whether somebody looked, with whatever result.
func (v Val[T]) Looked() bool { return v.State != NotLooked }

// IsZero lets encoding/json leave out values that nobody looked at.
func (v Val[T]) IsZero() bool { return v.State == NotLooked }

type valJSON struct {
	V     json.RawMessage `json:"v,omitempty"`
	State string          `json:"state,omitempty"`
	Why   string          `json:"why,omitempty"`
	At    *Evidence       `json:"at,omitempty"`
}

// MarshalJSON writes {"v":…,"at":…} for Known values and {"state":"absent"|"failed",…} for others.
func (v Val[T]) MarshalJSON() ([]byte, error) {
	var w valJSON
	if v.State == Known {
		raw, err := json.Marshal(v.V)
		if err != nil {
			return nil, err
		}
		w.V = raw
	} else {
		w.State = v.State.String()
	}
	w.Why = v.Why
	if !v.At.IsZero() {
		w.At = &v.At
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes; unknown keys and states are errors,
// because bundles are edited by hand and a silent typo would change a verdict.
func (v *Val[T]) UnmarshalJSON(b []byte) error {
	var w valJSON
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return err
	}
	*v = Val[T]{Why: w.Why}
	if w.At != nil {
		v.At = *w.At
	}
	switch w.State {
	case "", "known":
		if w.V == nil {
			return fmt.Errorf(`a value needs "v" or "state"`)
		}
		v.State = Known
		return json.Unmarshal(w.V, &v.V)
	case "absent":
		v.State = Absent
	case "failed":
		v.State = Failed
	case "notlooked":
		v.State = NotLooked
	default:
		return fmt.Errorf("unknown state %q", w.State)
	}
	return nil
}
