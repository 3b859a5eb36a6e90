// Package baseline learns what is usual for a kind of requests, so that it is not
// called slow. A kind is whatever the caller tells apart; nothing here reads a clock.
package baseline
