<?php
// What the class refuses, and how long calls wait.
//
//     rules.php PATH: the agent of the page has ended

function throws(string $class, callable $call): float
{
    $began = microtime(true);
    try {
        $call();
    } catch (Throwable $e) {
        if (get_class($e) !== $class) {
            throw $e;
        }
        return microtime(true) - $began;
    }
    throw new Exception("no $class");
}

function check(bool $ok, string $what): void
{
    if (!$ok) {
        throw new Exception($what);
    }
}

$path = $argv[1];
$ids = new Firn\Page($path, wait: 0.3);
$took = throws('Firn\Closed', fn() => $ids->next());
check($took >= 0.3 && $took < 5, "waited $took s");
$took = throws('Firn\Closed', fn() => (new Firn\Page($path, wait: 0))->next());
check($took < 0.25, "waited $took s");

// The handler of a signal runs during a wait. It may use the page, change the object, and end the wait by an exception.
class Alarm extends Exception {}
pcntl_async_signals(true);
$alarms = 0;
$waiting = null;
pcntl_signal(SIGALRM, function () use (&$alarms, &$waiting, $path) {
    $alarms++;
    throws('Firn\Closed', fn() => (new Firn\Page($path, wait: 0))->next());
    if ($alarms === 1) {
        $waiting?->__construct($path, wait: null);
        pcntl_alarm(1);
    } else {
        throw new Alarm;
    }
});
$calls = [
    function () use (&$waiting, $path) { $waiting = new Firn\Page($path, wait: 60); $waiting->next(); },
    fn() => (new Firn\Page($path, wait: null))->batch(3),
    fn() => new Firn\Page("$path-missing", wait: null),
];
foreach ($calls as $call) {
    $alarms = 0;
    pcntl_alarm(1);
    $took = throws('Alarm', $call);
    check($alarms === 2 && $took < 20, "$alarms alarms, waited $took s");
    $waiting = null;
}

check($ids->batch(0) === [], 'batch(0)');
throws('ValueError', fn() => $ids->batch(-1));
throws('ValueError', fn() => new Firn\Page($path, -1));
throws('ValueError', fn() => new Firn\Page($path, NAN));
throws('ValueError', fn() => new Firn\Page(''));
throws('ValueError', fn() => new Firn\Page("a\0b"));
throws('Error', fn() => clone $ids);
throws('Exception', fn() => serialize($ids));
throws('Firn\Closed', function () use ($ids, $path) {
    $ids->__construct($path, 0);
    $ids->next();
});
ini_set('open_basedir', __DIR__);
throws('Firn\Unusable', fn() => new Firn\Page($path));
echo "ok\n";
