<?php
// Compares the declarations of firn.stub.php with the extension, under another namespace.
//
//     declared.php firn.stub.php

eval(str_replace(['<?php', 'namespace Firn;'], ['', 'namespace Stub;'], file_get_contents($argv[1])));

function text(string $class): string
{
    $c = new ReflectionClass($class);
    $text = ($c->isFinal() ? 'final ' : '') . "$class extends " . ($c->getParentClass() ? $c->getParentClass()->name : '') . "\n";
    foreach ($c->getMethods() as $m) {
        if ($m->class === $class) {
            $parameters = array_map(
                fn($p) => $p->getType() . ' ' . $p->name . ($p->isOptional() ? ' = ' . var_export($p->getDefaultValue(), true) : ''),
                $m->getParameters(),
            );
            $text .= "  $m->name(" . implode(', ', $parameters) . '): ' . $m->getReturnType() . "\n";
        }
    }
    return $text;
}

$classes = array_filter(get_declared_classes(), fn($c) => str_starts_with($c, 'Firn\\'));
foreach ($classes as $class) {
    $stub = str_replace('Stub\\', 'Firn\\', text(str_replace('Firn\\', 'Stub\\', $class)));
    if ($stub !== text($class)) {
        exit("the extension has\n" . text($class) . "and the stub\n$stub");
    }
}
if (count($classes) !== 7) {
    exit('classes: ' . implode(' ', $classes));
}
echo "ok\n";
