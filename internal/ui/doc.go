// Package ui is how the command talks: errors with an exit code and hints, warnings,
// questions, progress, tables or JSON, and the signals that stop it.
//
// A command returns a [Failure], or any other error; main prints it. What a hint has to
// repeat of the command that failed, its store and its config, main adds.
package ui
