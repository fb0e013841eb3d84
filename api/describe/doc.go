// Package describe makes answers of the HTTP API of objects: pure, with the planner's words for
// what an instance waits for, and in one word how an object is and what needs a human.
package describe
