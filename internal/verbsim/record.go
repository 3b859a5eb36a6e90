package verbsim

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// RecordSize is the size of a record in the file, in bytes.
const RecordSize = 80

// MaxRecords bounds what ReadRecords takes into memory.
const MaxRecords = 32 << 20

// Bits of Record.Flags.
const (
	// RecordRecv marks the completion of a receive.
	RecordRecv = 1 << 0
	// RecordOverlap marks a send whose post overlapped the post of another
	// thread on the same queue.
	RecordOverlap = 1 << 1
)

// Record is one completion as the workload wrote it with --truth-records:
// that of a signaled or failed send, or of a receive. Times are nanoseconds
// of CLOCK_MONOTONIC.
type Record struct {
	WRID uint64
	// PostBefore and PostAfter enclose the call that posted the request,
	// PollBefore and PollAfter the poll that delivered its completion.
	PostBefore, PostAfter, PollBefore, PollAfter uint64
	// Context is the address of the ibv_context in the workload.
	Context uint64
	// Bytes is the payload of the whole unit: the request itself and the
	// unsignaled ones it retired, Requests of them together.
	Bytes    uint64
	QPNumber uint32
	Requests uint32
	// Operation has the values of verbs.Operation, Status of verbs.Status.
	Operation, Status uint16
	Flags             uint32
	// Due is when the device was done; 0 when it is not known.
	Due uint64
}

// Recv reports whether it is the completion of a receive.
func (r *Record) Recv() bool { return r.Flags&RecordRecv != 0 }

// Overlap reports whether the post overlapped another thread's on its queue.
func (r *Record) Overlap() bool { return r.Flags&RecordOverlap != 0 }

// ReadRecords reads all records, at most MaxRecords.
func ReadRecords(r io.Reader) ([]Record, error) {
	var records []Record
	var buf [RecordSize]byte
	buffered := bufio.NewReaderSize(r, 1<<16)
	for {
		_, err := io.ReadFull(buffered, buf[:])
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading record %d of a workload: %w", len(records), err)
		}
		if len(records) == MaxRecords {
			return nil, fmt.Errorf("reading records of a workload: more than %d; run it shorter or with --max-records", MaxRecords)
		}
		records = append(records, parseRecord(&buf))
	}
}

// ReadRecordsFile reads all records of a file, at most MaxRecords.
func ReadRecordsFile(path string) ([]Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading records of a workload: %w", err)
	}
	defer f.Close()
	records, err := ReadRecords(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return records, nil
}

// parseRecord follows struct record of driver/driver.h.
func parseRecord(b *[RecordSize]byte) Record {
	le := binary.LittleEndian
	return Record{
		WRID:       le.Uint64(b[0:]),
		PostBefore: le.Uint64(b[8:]),
		PostAfter:  le.Uint64(b[16:]),
		PollBefore: le.Uint64(b[24:]),
		PollAfter:  le.Uint64(b[32:]),
		Context:    le.Uint64(b[40:]),
		Bytes:      le.Uint64(b[48:]),
		QPNumber:   le.Uint32(b[56:]),
		Requests:   le.Uint32(b[60:]),
		Operation:  le.Uint16(b[64:]),
		Status:     le.Uint16(b[66:]),
		Flags:      le.Uint32(b[68:]),
		Due:        le.Uint64(b[72:]),
	}
}
