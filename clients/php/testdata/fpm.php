<?php
// Answers a request with the process, when it began, how often the page is mapped, and ten ids.

$began = hrtime(true);
try {
    $ids = new Firn\Page($_SERVER['FIRN_PAGE'], wait: 60);
    $got = [$ids->next(), ...$ids->batch(9)];
    $mapped = substr_count(file_get_contents('/proc/self/maps'), $_SERVER['FIRN_PAGE']);
    echo getmypid(), " $began $mapped ", implode(' ', $got);
} catch (Firn\Exception $e) {
    http_response_code(503);
    echo $e->getMessage();
}
