package rdmareceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestByKeyAddsUp(t *testing.T) {
	fast, slow := seriesOf(trainer, 3, time.Microsecond), seriesOf(trainer, 5, time.Millisecond)
	untimed := verbs.Series{Key: fast.Key, Completions: 7}
	for _, order := range [][]verbs.Series{{fast, slow, untimed}, {slow, fast, untimed}, {untimed, slow, fast}} {
		all := byKey(order)
		assert.Len(t, all, 1)
		sum := all[fast.Key]
		assert.EqualValues(t, 3+5+7, sum.Completions)
		assert.EqualValues(t, 3+5, sum.Timed)
		assert.Equal(t, time.Microsecond, sum.Min)
		assert.Equal(t, time.Millisecond, sum.Max)
		assert.Equal(t, fast.Sum+slow.Sum, sum.Sum)
		assert.Equal(t, fast.StageTime[verbs.StageDevice]+slow.StageTime[verbs.StageDevice], sum.StageTime[verbs.StageDevice])
		assert.EqualValues(t, 3, sum.Durations.Counts[bucketOf(time.Microsecond)])
		assert.EqualValues(t, 5, sum.Durations.Counts[bucketOf(time.Millisecond)])
	}
	assert.EqualValues(t, 5, slow.Completions, "what is added up is not changed")
}

func TestIncreaseOf(t *testing.T) {
	before, now := seriesOf(trainer, 10, time.Microsecond), seriesOf(trainer, 14, time.Microsecond)
	increase := increaseOf(&now, &before)
	assert.EqualValues(t, 4, increase.Completions)
	assert.EqualValues(t, 8, increase.Requests)
	assert.EqualValues(t, 4*4096, increase.Bytes)
	assert.Equal(t, 4*time.Microsecond, increase.Sum)
	assert.EqualValues(t, 4, increase.Durations.Counts[bucketOf(time.Microsecond)])
	assert.Equal(t, now.StageTime[verbs.StagePost]-before.StageTime[verbs.StagePost], increase.StageTime[verbs.StagePost])

	assert.Equal(t, now, increaseOf(&now, nil))
	for _, change := range []func(*verbs.Series){
		func(s *verbs.Series) { s.Completions = 1 },
		func(s *verbs.Series) { s.Sum = 1 },
		func(s *verbs.Series) { s.StageTime[verbs.StagePost] = 1 },
		func(s *verbs.Series) { s.Durations.Counts[bucketOf(time.Microsecond)] = 1 },
	} {
		anew := now
		change(&anew)
		assert.Equal(t, anew, increaseOf(&anew, &before), "a part went back, so all of it is new")
	}
}
