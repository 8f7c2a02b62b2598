package squashfs

// lru keeps the cap values that were used last. The zero value with a cap is
// ready for use. It has no lock of its own.
type lru[K comparable, V any] struct {
	cap  int
	m    map[K]*lruNode[K, V]
	head lruNode[K, V] // of a ring; head.next was used last
}

type lruNode[K comparable, V any] struct {
	key        K
	val        V
	prev, next *lruNode[K, V]
}

func (n *lruNode[K, V]) unlink() {
	n.prev.next, n.next.prev = n.next, n.prev
}

func (l *lru[K, V]) pushFront(n *lruNode[K, V]) {
	n.prev, n.next = &l.head, l.head.next
	n.prev.next, n.next.prev = n, n
}

func (l *lru[K, V]) get(k K) (v V, ok bool) {
	n, ok := l.m[k]
	if !ok {
		return v, false
	}
	n.unlink()
	l.pushFront(n)
	return n.val, true
}

// add stores a value under a key that is not there yet, and returns the value
// that had to leave for it.
func (l *lru[K, V]) add(k K, v V) (dropped V) {
	if l.m == nil {
		l.m = make(map[K]*lruNode[K, V])
		l.head.prev, l.head.next = &l.head, &l.head
	}
	n := &lruNode[K, V]{}
	if len(l.m) >= l.cap {
		n = l.head.prev
		n.unlink()
		delete(l.m, n.key)
		dropped = n.val
	}
	n.key, n.val = k, v
	l.m[k] = n
	l.pushFront(n)
	return dropped
}
