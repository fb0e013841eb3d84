package live

import "time"

// usage of something that is kept for a while after its last user has left. Who has it locks.
type usage struct {
	users int
	timer *time.Timer // of the while; nil: there are users, or there never was one
}

// begin is called for each user.
func (u *usage) begin() {
	u.users++
	u.stop()
}

// leave is called when a user leaves. After the last one, end is called when the while is over.
// It has to look at users again: somebody may have come by then.
func (u *usage) leave(while time.Duration, end func()) {
	u.users--
	if u.users == 0 {
		u.timer = time.AfterFunc(while, end)
	}
}

// stop the timer.
func (u *usage) stop() {
	if u.timer != nil {
		u.timer.Stop()
		u.timer = nil
	}
}
