package main

import (
	"errors"
	"os"
	"os/exec"
)

// sources copies the files of a client, with firn.h beside it as in the repository, and its program.
func sources(here, dir, client, program string) error {
	b, err := os.ReadFile(here + "/programs/" + program)
	return errors.Join(
		err, os.WriteFile(dir+"/"+program, b, 0o600),
		os.CopyFS(dir+"/"+client, os.DirFS(here+"/../../clients/"+client)),
		os.CopyFS(dir+"/c", os.DirFS(here+"/../../clients/c")),
	)
}

func inPython(here, dir string) ([]string, error) {
	if err := sources(here, dir, "python", "bench.py"); err != nil {
		return nil, err
	}
	return []string{"/usr/bin/python3", "bench.py"}, tool("/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--target", dir, dir+"/python")
}

func inPHP(here, dir string) ([]string, error) {
	if err := sources(here, dir, "php", "bench.php"); err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", "-ec", "phpize && ./configure && make")
	cmd.Dir = dir + "/php"
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = errors.Join(err, errors.New(string(out)))
	}
	return []string{"php", "-n", "-d", "memory_limit=1G", "-d", "extension=" + dir + "/php/modules/firn.so", "bench.php"}, err
}
