package setup_test

import (
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }
