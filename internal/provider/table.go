package provider

// entry is one member of a table handed to verbs_set_ops.
type entry struct {
	// address of the function, 0 when the member is NULL or imported.
	address  uint64
	imported string
}

// readTable reads the members of interest of the table at the address. It is
// not a table when any member is neither NULL, nor an import, nor a function.
func (a *analysis) readTable(at uint64, slots Slots) (map[int]entry, bool) {
	if at%8 != 0 || slots.Count <= 0 {
		return nil, false
	}
	entries := map[int]entry{}
	functions := 0
	if !a.spend(slots.Count) {
		return nil, false
	}
	for slot := range slots.Count {
		e, ok := a.readEntry(at + uint64(slot)*8)
		if !ok {
			return nil, false
		}
		if e.address != 0 || e.imported != "" {
			functions++
			entries[slot] = e
		}
	}
	return entries, functions > 0
}

func (a *analysis) readEntry(at uint64) (entry, bool) {
	r, relocated := a.relocations[at]
	switch {
	case relocated && r.imported != "":
		return entry{imported: r.imported}, true
	case relocated:
		return entry{address: r.address}, a.isFunction(r.address)
	default:
		raw, ok := a.img.word(at)
		return entry{}, ok && raw == 0
	}
}

// isFunction reports whether a function starts at the address. This also
// guarantees that it is the start of an instruction.
func (a *analysis) isFunction(address uint64) bool {
	if !a.img.executable(address) {
		return false
	}
	bounds, ok := a.frames.function(address)
	return ok && bounds.start == address
}
