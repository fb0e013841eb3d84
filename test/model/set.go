package main

// set holds the keys of nodes, as their indices: four bytes a slot, and half of the
// slots at most are taken.
type set struct {
	slots []uint32 // index plus one; 0 is free
}

const firstSlots = 1 << 12

// add says whether the key is new. Its caller then appends the node.
func (s *set) add(key uint64, nodes []node) bool {
	if 2*(len(nodes)+1) > len(s.slots) {
		s.grow(nodes)
	}
	at := s.find(key, nodes)
	if s.slots[at] != 0 {
		return false
	}
	s.slots[at] = uint32(len(nodes)) + 1
	return true
}

// find returns the slot of a key, or the free one where it belongs.
func (s *set) find(key uint64, nodes []node) uint64 {
	mask := uint64(len(s.slots) - 1)
	at := mix(key) & mask
	for s.slots[at] != 0 && nodes[s.slots[at]-1].key != key {
		at = (at + 1) & mask
	}
	return at
}

func (s *set) grow(nodes []node) {
	s.slots = make([]uint32, max(firstSlots, 2*len(s.slots)))
	for n := range nodes {
		s.slots[s.find(nodes[n].key, nodes)] = uint32(n) + 1
	}
}

// mix is the end of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
