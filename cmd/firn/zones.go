package main

// Time zones for documents, where the system has none, as most small containers do.
import _ "time/tzdata"
