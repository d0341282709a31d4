package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Where nobody can be asked whether a pool ever existed, and it could repeat ids of another one, the
// first refusal has all that the second would ask for: a hint of it is not refused.
func TestCreateASecondPoolUnasked(t *testing.T) {
	url := "sqlite:" + filepath.Join(emptyHome(t), "ids.db")
	mustAll(t, "pool create --new --store "+url)
	text := refusedWith(t, []string{"pool", "create", "notes", "--store", url}, "nobody can say whether pool \"notes\" ever existed",
		"could repeat ids of pool default", "firn pool set default --workers 0-511 --store "+url,
		"firn pool create notes --workers 512-1023 --new --store "+url,
		"only if their ids never meet in one table, queue or cache",
		"firn pool create notes --may-repeat default --new --store "+url, "firn pool ensure notes --may-repeat default --store "+url)
	if strings.Contains(text, "firn pool create notes --new") {
		t.Errorf("a hint is refused:\n%s", text)
	}
	mustAll(t, "pool create notes --may-repeat default --new --store "+url)
	refusedWith(t, []string{"pool", "create", "third", "--may-repeat", "notes", "--store", url},
		"firn pool create third --may-repeat notes --may-repeat default --new --store "+url)
	mustAll(t, "pool create third --may-repeat notes --may-repeat default --new --store "+url)
	refusedWith(t, []string{"pool", "create", "fourth", "--may-repeat", "notes", "--may-repeat", "default", "--may-repeat", "third", "--store", url},
		"firn pool create fourth --new --may-repeat notes --may-repeat default --may-repeat third --store "+url)
}
