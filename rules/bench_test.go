package rules

import "testing"

// BenchmarkLoadEnvironment is what every check pays before it looks at anything.
func BenchmarkLoadEnvironment(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(Embedded(), "bench", Environment...); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoadLog is what explain pays for the signatures.
func BenchmarkLoadLog(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := LoadLog(EmbeddedLog()); err != nil {
			b.Fatal(err)
		}
	}
}
